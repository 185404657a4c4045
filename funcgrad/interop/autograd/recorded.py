"""Names of autograd 1.9.1, by module: what is defined there, without NumPy's and SciPy's own names.

A name that is here and not in funcgrad can be imported, and says that it is missing when it is
used; any other is an AttributeError, as in autograd.
"""

from __future__ import annotations

NAMES: dict[str, str] = {
    "autograd": """
        builtins checkpoint core deriv dict differential_operators elementwise_grad extend
        grad grad_and_aux grad_named hessian hessian_tensor_product hessian_vector_product
        holomorphic_grad isinstance jacobian list make_ggnvp make_hvp make_jvp make_vjp misc
        multigrad_dict numpy primitive scipy tensor_jacobian_product tracer tuple type util
        value_and_grad vector_jacobian_product wrap_util
    """,
    "autograd.builtins": """
        Box ContainerVSpace DictBox DictMeta DictVSpace ListMeta ListVSpace NamedTupleVSpace
        SequenceBox SequenceVSpace SparseObject TupleMeta TupleVSpace VSpace _make_dict
        container_take container_untake defjvp defjvp_argnum defvjp defvjp_argnum dict dict_
        fwd_grad_make_sequence grad_container_take grad_sequence_extend_left
        grad_sequence_extend_right isinstance isinstance_ list list_ make_sequence
        notrace_primitive primitive sequence_extend_left sequence_extend_right subvals tuple
        tuple_ type type_ vspace
    """,
    "autograd.core": """
        Box JVPNode Node SparseBox SparseObject VJPNode VSpace add_outgrads backward_pass
        def_linear defjvp defjvp_argnum defjvp_argnums defvjp defvjp_argnum defvjp_argnums
        deprecated_defgrad deprecated_defvjp deprecated_defvjp_is_zero func getval
        identity_jvp identity_vjp isbox make_jvp make_vjp primitive primitive_
        primitive_jvps primitive_vjps primitive_with_deprecation_warnings sparse_add
        sparse_object_types subval sum_outgrads toposort trace translate_jvp translate_vjp
        vspace
    """,
    "autograd.differential_operators": """
        _make_jvp _make_vjp atuple checkpoint defvjp_argnum deriv elementwise_grad grad
        grad_and_aux grad_named hessian hessian_tensor_product hessian_vector_product
        holomorphic_grad jacobian make_ggnvp make_hvp make_jvp make_jvp_reversemode make_vjp
        multigrad_dict np primitive tensor_jacobian_product unary_to_nary value_and_grad
        vector_jacobian_product vspace
    """,
    "autograd.extend": """
        Box JVPNode SparseObject VJPNode VSpace def_linear defjvp defjvp_argnum
        defjvp_argnums defvjp defvjp_argnum defvjp_argnums notrace_primitive primitive
        register_notrace vspace
    """,
    "autograd.misc": """
        const_graph flatten tracers
    """,
    "autograd.misc.fixed_points": """
        defvjp fixed_point fixed_point_vjp make_vjp primitive tuple vspace
    """,
    "autograd.misc.flatten": """
        _concatenate _flatten flatten flatten_func make_vjp np type
    """,
    "autograd.misc.optimizers": """
        adam flatten np rmsprop sgd unflatten_optimizer wraps
    """,
    "autograd.misc.tracers": """
        ConstGraphNode FullGraphNode Node const_graph const_graph_unary full_graph subvals
        toposort trace wraps
    """,
    "autograd.numpy": """
        Box _is_np_or_autograd _original_where array_from_args builtins c_class
        concatenate_args custom_where fft linalg make_diagonal metadata notrace_functions
        notrace_primitive numpy_boxes numpy_jvps numpy_vjps numpy_vspaces numpy_wrapper
        parse_einsum_input primitive r_class random wrap_if_boxes_inside wrap_intdtype
        wrap_namespace
    """,
    "autograd.numpy.fft": """
        anp check_even_shape check_no_repeated_axes defvjp fft fft2 fft_grad fftfreq fftn
        fftshift get_fft2_args get_fft_args get_fftn_args hfft ifft ifft2 ifftn ifftshift
        ihfft irfft irfft2 irfft_grad irfftn make_rfft_factors match_complex primitive rfft
        rfft2 rfft_grad rfftfreq rfftn test truncate_pad vspace wrap_namespace
    """,
    "autograd.numpy.linalg": """
        T _diag _matrix_diag _primitive_norm add2d anp builtins cholesky cond cross defjvp
        defvjp det diagonal eig eigh eigvals eigvalsh grad_cholesky grad_eig grad_eigh
        grad_inv grad_pinv grad_solve grad_svd inv lstsq matmul matrix_norm matrix_power
        matrix_rank matrix_transpose multi_dot norm norm_jvp norm_vjp outer pinv qr slogdet
        solve svd svdvals tensordot tensorinv tensorsolve test trace vecdot vector_norm
        wrap_namespace
    """,
    "autograd.numpy.numpy_boxes": """
        ArrayBox Box SequenceBox anp diff_methods nondiff_methods primitive
        trace_primitives_map
    """,
    "autograd.numpy.numpy_jvps": """
        ArrayBox JVPNode anp atleast_jvpmaker balanced_eq broadcast def_linear defjvp
        defjvp_argnum dot_adjoint_0 dot_adjoint_1 forward_grad_np_std forward_grad_np_var
        func fwd_grad_chooser fwd_grad_concatenate_args fwd_grad_partition fwd_grad_sort
        match_complex nograd_functions np_abs_jvp np_conj_jvp register_notrace replace_zero
        tensordot_adjoint_0 tensordot_adjoint_1 untake vspace
    """,
    "autograd.numpy.numpy_vjps": """
        ArrayBox SparseObject VJPNode _unpad anp array_from_args_gradmaker
        array_from_scalar_or_array_gradmaker balanced_eq defvjp defvjp_argnum dot_adjoint_0
        dot_adjoint_1 dot_vjp_0 dot_vjp_1 func grad_broadcast_to grad_chooser
        grad_concatenate_args grad_diff grad_einsum grad_gradient grad_inner grad_kron
        grad_np_cumsum grad_np_mean grad_np_prod grad_np_std grad_np_sum grad_np_var
        grad_partition grad_repeat grad_reshape_list grad_rollaxis grad_sort grad_tile
        grad_transpose match_complex matmul_adjoint_0 matmul_adjoint_1 matmul_vjp_0
        matmul_vjp_1 nograd_functions np_abs_vjp np_conj_vjp pad_vjp primitive
        register_notrace repeat_to_match_shape replace_zero reverse_axis tensordot_adjoint_0
        tensordot_adjoint_1 tensordot_vjp_0 tensordot_vjp_1 unbroadcast unbroadcast_einsum
        unbroadcast_f unpermuter untake vspace wrapped_reshape
    """,
    "autograd.numpy.numpy_vspaces": """
        ArrayVSpace ComplexArrayVSpace EigResultVSpace EighResultVSpace NamedTupleVSpace
        QRResultVSpace SVDResultVSpace SlogdetResultVSpace VSpace
    """,
    "autograd.numpy.numpy_wrapper": """
        _array_from_scalar_or_array _astype _primitive_mean _primitive_std _primitive_var
        array_from_args builtins c_class concatenate_args make_diagonal metadata
        notrace_functions notrace_primitive parse_einsum_input primitive r_class
        wrap_if_boxes_inside wrap_intdtype wrap_namespace
    """,
    "autograd.numpy.random": """
        beta binomial bytes chisquare choice default_rng dirichlet exponential f gamma
        geometric get_bit_generator get_state gumbel hypergeometric laplace logistic
        lognormal logseries multinomial multivariate_normal negative_binomial
        noncentral_chisquare noncentral_f normal pareto permutation poisson power rand
        randint randn random random_integers random_sample ranf rayleigh sample seed
        set_bit_generator set_state shuffle standard_cauchy standard_exponential
        standard_gamma standard_normal standard_t test triangular uniform vonmises wald
        weibull wrap_namespace zipf
    """,
    "autograd.scipy": """
        integrate signal special stats
    """,
    "autograd.scipy.integrate": """
        argnums_unpack defvjp_argnums flatten grad_odeint make_vjp np odeint primitive tuple
    """,
    "autograd.scipy.linalg": """
        _flip _jvp_sqrtm _jvp_sylvester _vjp_sqrtm _vjp_sylvester anp bandwidth block_diag
        cdf2rdf cho_factor cho_solve cho_solve_banded cholesky cholesky_banded circulant
        clarkson_woodruff_transform companion convolution_matrix coshm cosm cossin defjvp
        defjvp_argnums defvjp defvjp_argnums det dft diagsvd eig eig_banded eigh
        eigh_tridiagonal eigvals eigvals_banded eigvalsh eigvalsh_tridiagonal expm expm_cond
        expm_frechet fiedler fiedler_companion find_best_blas_type fractional_matrix_power
        funm get_blas_funcs get_lapack_funcs grad_solve_banded grad_solve_triangular
        hadamard hankel helmert hessenberg hilbert inv invhilbert invpascal ishermitian
        issymmetric khatri_rao ldl leslie logm lstsq lu lu_factor lu_solve matmul_toeplitz
        matrix_balance norm null_space ordqz orth orthogonal_procrustes pascal pinv pinvh
        polar qr qr_delete qr_insert qr_multiply qr_update qz rq rsf2csf schur signm sinhm
        sinm solve solve_banded solve_circulant solve_continuous_are
        solve_continuous_lyapunov solve_discrete_are solve_discrete_lyapunov solve_lyapunov
        solve_sylvester solve_toeplitz solve_triangular solveh_banded sqrtm subspace_angles
        svd svdvals tanhm tanm test toeplitz wrap_namespace
    """,
    "autograd.scipy.signal": """
        _pad compute_conv_size convolve defvjp einsum_tensordot flipped_idxs grad_convolve
        np parse_axes primitive
    """,
    "autograd.scipy.special": """
        beta betainc betaln defjvp defvjp digamma erf erfc erfcinv erfinv expit
        fwd_grad_logsumexp gamma gammainc gammaincc gammaln gammasgn i0 i1 iv ive j0 j1 jn
        logit logsumexp make_gammainc_vjp_arg1 make_grad_logsumexp multigammaln np polygamma
        primitive psi repeat_to_match_shape rgamma unbroadcast_f y0 y1 yn
    """,
    "autograd.scipy.stats": """
        beta chi2 dirichlet gamma multivariate_normal norm poisson t
    """,
    "autograd.test_util": """
        check_equivalent check_grads check_jvp check_vjp combo_check get_name make_jvp
        make_numerical_jvp make_vjp scalar_close unary_to_nary vspace
    """,
    "autograd.tracer": """
        Box Node TraceStack box_type_mappings box_types find_top_boxed_args getval isbox
        new_box notrace_primitive notrace_primitives primitive register_notrace subvals
        toposort trace trace_primitives_map trace_stack wraps
    """,
    "autograd.util": """
        func quick_grad_check subval subvals toposort
    """,
    "autograd.wrap_util": """
        get_doc get_name subvals unary_to_nary wrap_nary_f wraps
    """,
}
