"""Modules of JAX 0.10.2 beyond those of `recorded`, so that importing any other is an ImportError.

They were listed by ``pkgutil.walk_packages``, without tests and dialects of MLIR. Of modules that
are private, or cannot be imported without an accelerator's packages, names are not recorded: any
name can be imported from these, and says that it is missing when it is used.
"""

from __future__ import annotations

NAMES: dict[str, str] = {
    "jax.cloud_tpu_init": """
        cloud_tpu_init
    """,
    "jax.dlpack": """
        from_dlpack is_supported_dtype
    """,
    "jax.experimental.array_serialization": "",
    "jax.experimental.buffer_callback": """
        Buffer ExecutionContext ExecutionStage buffer_callback
    """,
    "jax.experimental.checkify": """
        Error JaxRuntimeError all_checks automatic_checks check check_error checkify
        debug_check div_checks float_checks index_checks init_error nan_checks user_checks
    """,
    "jax.experimental.colocated_python": """
        api colocated_cpu_devices colocated_python colocated_python_class func func_backend
        obj obj_backend serialization
    """,
    "jax.experimental.compilation_cache": """
        compilation_cache
    """,
    "jax.experimental.compilation_cache.compilation_cache": """
        reset_cache set_cache_dir
    """,
    "jax.experimental.compute_on": """
        compute_on compute_on2
    """,
    "jax.experimental.control_deps": """
        control_dep jax schedule
    """,
    "jax.experimental.custom_partitioning": """
        ArrayMapping BATCHING CompoundFactor SdyShardingRule custom_partitioning
        custom_partitioning_p
    """,
    "jax.experimental.fused": """
        ad batching core debug_info dispatch fused fused_p ir lu map mlir pe safe_map
        safe_zip tree_flatten tree_unflatten typeof unzip2 weakref_lru_cache zip
    """,
    "jax.experimental.hijax": """
        AbstractRef AbstractValue AvalMutableQDD AvalQDD HiPrimitive HiPspec HiType
        MutableHiType ShapedArray TransformedRef VJPHiPrimitive Zero aval_method
        aval_property control_flow_allowed_effects instantiate_zeros is_undefined_primal
        register_hitype
    """,
    "jax.experimental.jet": """
        JetTrace JetTracer ZeroSeries ZeroTerm ad_util api_util call_param_updaters core
        def_comp def_deriv deflinear defzero deriv_prop dispatch fact jet jet_rules jnp lax
        lax_internal linear_prop lu pe pjit register_pytree_node safe_zip sharding_impls
        tree_flatten tree_structure tree_unflatten treedef_is_leaf unzip2 weakref_lru_cache
        zero_prop zero_series zero_term
    """,
    "jax.experimental.key_reuse": "",
    "jax.experimental.layout": """
        Format Layout with_layout_constraint
    """,
    "jax.experimental.mesh_utils": """
        create_device_mesh create_hybrid_device_mesh device_kind_handler_dict
    """,
    "jax.experimental.multihost_utils": """
        P ProcessFailureError ad array assert_equal batching broadcast_one_to_all core
        distributed dtypes global_array_to_host_local_array
        global_array_to_host_local_array_impl global_array_to_host_local_array_p
        gtl_abstract_eval host_local_array_to_global_array
        host_local_array_to_global_array_impl host_local_array_to_global_array_p jax jnp
        live_devices ltg_abstract_eval ltg_batcher mlir pjit_lib prng process_allgather pxla
        reached_preemption_sync_point safe_zip sharding_impls sync_global_devices
        tree_flatten tree_unflatten xla_bridge xla_client
    """,
    "jax.experimental.ode": """
        abs2 api_util core custom_derivatives fit_4th_order_polynomial initial_step_size
        interp_fit_dopri jax jnp lax lu map mean_error_ratio odeint optimal_step_size
        promote_dtypes_inexact ravel_first_arg ravel_pytree runge_kutta_step safe_map
        safe_zip tree_leaves tree_map zip
    """,
    "jax.experimental.pallas": """
        ANY BlockSpec Blocked BoundedSlice Buffered CompilerParams CostEstimate DeviceIdType
        Element GridSpec HOST Indirect MemoryRef MemorySpace RevisitMode Slice Squeezed
        align_to broadcast_to cdiv core_map debug_check debug_checks_enabled debug_print
        delay dot ds dslice empty empty_like empty_ref_like enable_debug_checks
        enable_poison_buffers estimate_cost get_global kernel loop lower_as_mlir multiple_of
        next_power_of_2 no_block_spec num_programs ops pallas_call pallas_call_p
        pallas_export_experimental program_id reciprocal run_scoped run_state select_ref
        semaphore semaphore_read semaphore_signal semaphore_wait squeezed strides_from_shape
        tpu when with_scoped
    """,
    "jax.experimental.pallas.fuser": """
        BlockIndexTransform Fusion custom_fusion evaluate fuse fusible get_fusion_values
        get_stateful_input_fusion_values get_stateful_output_fusion_values
        make_scalar_prefetch_handler pull_block_spec push_block_spec
    """,
    "jax.experimental.pallas.tpu": """
        ARBITRARY BufferType BufferedRef BufferedRefBase CMEM CORE_PARALLEL ChipVersion
        CompilerParams CoreType DeviceIdType GridDimensionSemantics HBM HOST InterpretParams
        LoweringException MemorySpace PARALLEL PrefetchScalarGridSpec SEMAPHORE SMEM
        SUBCORE_PARALLEL SemaphoreType SideEffectType Tiling TpuInfo VMEM VMEM_SHARED
        async_copy async_remote_copy bitcast core core_barrier create_tensorcore_mesh
        dma_semaphore einshape emit_pipeline emit_pipeline_with_allocations
        force_tpu_interpret_mode get_barrier_semaphore get_tpu_info get_tpu_info_for_chip
        is_tpu_device load make_async_copy make_async_remote_copy matmul_acc_lhs matmul_pop
        matmul_push_rhs pack_elementwise prng_random_bits prng_seed
        reset_tpu_interpret_mode_state roll run_on_first_core sample_block semaphore
        semaphore_read semaphore_signal semaphore_wait set_tpu_interpret_mode
        stateful_bernoulli stateful_bits stateful_normal stateful_uniform stochastic_round
        store sync_copy to_pallas_key touch trace_value unpack_elementwise
        with_memory_space_constraint
    """,
    "jax.experimental.pallas.tpu_sc": """
        Indices PackFormat ScalarSubcoreMesh VectorSubcoreMesh addupdate
        addupdate_compressed addupdate_scatter all_reduce_ffs all_reduce_population_count
        bitcast cummax cumsum fetch_and_add get_sparse_core_info load_expanded load_gather
        pack parallel_loop scan_count sort_key_val store_compressed store_scatter
        subcore_barrier unpack
    """,
    "jax.experimental.pallas.triton": """
        CompilerParams approx_tanh atomic_add atomic_and atomic_cas atomic_max atomic_min
        atomic_or atomic_xchg atomic_xor debug_barrier dot elementwise_inline_asm load
        max_contiguous store
    """,
    "jax.experimental.pjit": """
        pjit
    """,
    "jax.experimental.profiler": """
        get_profiled_instructions_proto
    """,
    "jax.experimental.random": """
        StatefulPRNG stateful_rng
    """,
    "jax.experimental.rnn": """
        Array core custom_vjp dispatch get_num_params_in_lstm gpu_rnn init_lstm_weight jax
        jnp lax lstm lstm_bwd lstm_fwd lstm_ref mlir rnn_abstract_eval rnn_bwd_abstract_eval
        rnn_bwd_p rnn_fwd_p sigmoid swap_lstm_gates tanh unpack_lstm_weights
    """,
    "jax.experimental.scheduling_groups": """
        FlatTree ad attr_get batching core dce_jaxpr_xla_metadata_rule debug_info dispatch
        func_dialect ir lu map mlir pe safe_map safe_zip scheduling_group split_list
        subs_list tree_flatten tree_unflatten unzip2 weakref_lru_cache xla_metadata_call
        xla_metadata_call_p zip
    """,
    "jax.experimental.serialize_executable": """
        deserialize_and_load jax serialize xc
    """,
    "jax.experimental.shard_alike": """
        shard_alike
    """,
    "jax.experimental.shard_map": """
        jshmap shard_map traceback_util
    """,
    "jax.experimental.sparse": """
        BCOO BCSR COO CSC CSR CuSparseEfficiencyWarning JAXSparse SparseEfficiencyError
        SparseEfficiencyWarning SparseTracer ad api bcoo bcoo_broadcast_in_dim
        bcoo_concatenate bcoo_conv_general_dilated bcoo_dot_general bcoo_dot_general_p
        bcoo_dot_general_sampled bcoo_dot_general_sampled_p bcoo_dynamic_slice bcoo_extract
        bcoo_extract_p bcoo_fromdense bcoo_fromdense_p bcoo_gather bcoo_multiply_dense
        bcoo_multiply_sparse bcoo_reduce_sum bcoo_reshape bcoo_rev bcoo_slice
        bcoo_sort_indices bcoo_sort_indices_p bcoo_spdot_general_p bcoo_squeeze
        bcoo_sum_duplicates bcoo_sum_duplicates_p bcoo_todense bcoo_todense_p bcoo_transpose
        bcoo_transpose_p bcoo_update_layout bcsr bcsr_broadcast_in_dim bcsr_concatenate
        bcsr_dot_general bcsr_dot_general_p bcsr_extract bcsr_extract_p bcsr_fromdense
        bcsr_fromdense_p bcsr_sum_duplicates bcsr_todense bcsr_todense_p coo coo_fromdense
        coo_fromdense_p coo_matmat coo_matmat_p coo_matvec coo_matvec_p coo_todense
        coo_todense_p csr csr_fromdense csr_fromdense_p csr_matmat csr_matmat_p csr_matvec
        csr_matvec_p csr_todense csr_todense_p empty eye grad jacfwd jacobian jacrev linalg
        random random_bcoo sparsify todense todense_p transform util value_and_grad
    """,
    "jax.experimental.topologies": """
        Device TopologyDescription get_attached_topology get_topology_desc jax make_mesh
        mesh_utils xb
    """,
    "jax.experimental.transfer": """
        TYPE_CHECKING TransferConnection TransferServer jax make_error_array
        start_transfer_server use_cpp_class use_cpp_method
    """,
    "jax.experimental.xla_metadata": """
        set_xla_metadata
    """,
    "jax.extend.backend": """
        backend_xla_version backends clear_backends clear_in_memory_compilation_cache
        get_backend get_compile_options get_default_device ifrt_proxy register_backend_cache
        register_backend_factory
    """,
    "jax.extend.core.primitives": """
        abs_p acos_p acosh_p add_jaxvals_p add_p after_all_p all_gather_p all_to_all_p and_p
        approx_top_k_p argmax_p argmin_p asin_p asinh_p atan2_p atan_p atanh_p axis_index_p
        bessel_i0e_p bessel_i1e_p bitcast_convert_type_p broadcast_in_dim_p call_p cbrt_p
        ceil_p cholesky_p clamp_p closed_call_p clz_p complex_p concatenate_p cond_p conj_p
        conv_general_dilated_p convert_element_type_p copy_p cos_p cosh_p create_token_p
        cumlogsumexp_p cummax_p cummin_p cumprod_p cumsum_p custom_jvp_call_p custom_lin_p
        custom_vjp_call_p device_put_p digamma_p div_p dot_general_p dynamic_slice_p
        dynamic_update_slice_p eig_p eigh_p empty2_p eq_p eq_to_p erf_inv_p erf_p erfc_p
        exp2_p exp_p expm1_p fft_p floor_p gather_p ge_p get_p gt_p hessenberg_p
        householder_product_p igamma_grad_a_p igamma_p igammac_p imag_p integer_pow_p iota_p
        is_finite_p jit_p le_p le_to_p lgamma_p linear_solve_p log1p_p log_p logistic_p lt_p
        lt_to_p lu_p max_p min_p mul_p name_p ne_p neg_p nextafter_p not_p or_p pad_p pmax_p
        pmin_p polygamma_p population_count_p pow_p ppermute_p psum_p qr_p
        ragged_all_to_all_p random_bits_p random_fold_in_p random_gamma_p random_seed_p
        random_split_p real_p reduce_and_p reduce_max_p reduce_min_p reduce_or_p reduce_p
        reduce_precision_p reduce_prod_p reduce_sum_p reduce_window_max_p
        reduce_window_min_p reduce_window_p reduce_window_sum_p reduce_xor_p
        regularized_incomplete_beta_p rem_p remat_p reshape_p rev_p rng_bit_generator_p
        rng_uniform_p round_p rsqrt_p scan_p scatter_add_p scatter_max_p scatter_min_p
        scatter_mul_p scatter_p schur_p select_and_gather_add_p select_and_scatter_add_p
        select_and_scatter_p select_n_p sharding_constraint_p shift_left_p
        shift_right_arithmetic_p shift_right_logical_p sign_p sin_p sinh_p slice_p sort_p
        sqrt_p square_p squeeze_p stop_gradient_p sub_p svd_p swap_p tan_p tanh_p
        threefry2x32_p top_k_p transpose_p triangular_solve_p tridiagonal_p
        tridiagonal_solve_p while_p xor_p zeta_p
    """,
    "jax.extend.ifrt_programs": """
        ifrt_programs
    """,
    "jax.extend.linear_util": """
        StoreException WrappedFun cache merge_linear_aux transformation transformation2
        transformation_with_aux transformation_with_aux2 wrap_init
    """,
    "jax.extend.lowering": """
        JaxIrContext LoweringRuleContext upstream_dialects
    """,
    "jax.extend.pallas": """
        GridMapping register_lowering_rule
    """,
    "jax.extend.random": """
        define_prng_impl random_seed rbg_prng_impl seed_with_impl threefry2x32_p
        threefry_2x32 threefry_prng_impl unsafe_rbg_prng_impl
    """,
    "jax.extend.sharding": """
        GSPMDSharding get_hlo_sharding_from_serialized_proto
        get_op_sharding_from_serialized_proto get_serialized_proto_from_hlo_sharding
        xla_client
    """,
    "jax.extend.source_info_util": """
        NameStack SourceInfo current current_name_stack extend_name_stack new_name_stack
        new_source_info register_exclusion reset_name_stack set_name_stack summarize
        transform_name_stack user_context
    """,
    "jax.extend.xla": """
        PipelineStage clear_hlo_module_transformation register_hlo_module_transformation
    """,
    "jax.test_util": """
        check_grads check_jvp check_vjp
    """,
    "jax.version": "",
}
"""Public names, by module."""

WITHOUT_NAMES = """
    jax.collect_profile jax.experimental.array_serialization.pytree_serialization
    jax.experimental.array_serialization.pytree_serialization_utils
    jax.experimental.array_serialization.serialization
    jax.experimental.array_serialization.tensorstore_impl jax.experimental.colocated_python.api
    jax.experimental.colocated_python.func jax.experimental.colocated_python.func_backend
    jax.experimental.colocated_python.obj jax.experimental.colocated_python.obj_backend
    jax.experimental.colocated_python.serialization jax.experimental.jax2tf
    jax.experimental.key_reuse._core jax.experimental.mosaic jax.experimental.mosaic.dialects
    jax.experimental.mosaic.gpu jax.experimental.pallas.mosaic_gpu jax.experimental.pallas.ops
    jax.experimental.pallas.ops.gpu jax.experimental.pallas.ops.gpu.all_gather_mgpu
    jax.experimental.pallas.ops.gpu.attention jax.experimental.pallas.ops.gpu.attention_mgpu
    jax.experimental.pallas.ops.gpu.blackwell_matmul_mgpu
    jax.experimental.pallas.ops.gpu.blackwell_ragged_dot_mgpu
    jax.experimental.pallas.ops.gpu.collective_matmul_mgpu
    jax.experimental.pallas.ops.gpu.decode_attention
    jax.experimental.pallas.ops.gpu.hopper_matmul_mgpu
    jax.experimental.pallas.ops.gpu.hopper_mixed_type_matmul_mgpu
    jax.experimental.pallas.ops.gpu.layer_norm jax.experimental.pallas.ops.gpu.paged_attention
    jax.experimental.pallas.ops.gpu.ragged_dot_mgpu
    jax.experimental.pallas.ops.gpu.reduce_scatter_mgpu jax.experimental.pallas.ops.gpu.rms_norm
    jax.experimental.pallas.ops.gpu.softmax
    jax.experimental.pallas.ops.gpu.transposed_ragged_dot_mgpu jax.experimental.pallas.ops.tpu
    jax.experimental.pallas.ops.tpu.all_gather jax.experimental.pallas.ops.tpu.example_kernel
    jax.experimental.pallas.ops.tpu.flash_attention jax.experimental.pallas.ops.tpu.matmul
    jax.experimental.pallas.ops.tpu.megablox jax.experimental.pallas.ops.tpu.megablox.common
    jax.experimental.pallas.ops.tpu.megablox.gmm jax.experimental.pallas.ops.tpu.megablox.ops
    jax.experimental.pallas.ops.tpu.paged_attention
    jax.experimental.pallas.ops.tpu.paged_attention.paged_attention_kernel
    jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils
    jax.experimental.pallas.ops.tpu.paged_attention.util
    jax.experimental.pallas.ops.tpu.ragged_paged_attention
    jax.experimental.pallas.ops.tpu.ragged_paged_attention.kernel
    jax.experimental.pallas.ops.tpu.ragged_paged_attention.tuned_block_sizes
    jax.experimental.pallas.ops.tpu.random jax.experimental.pallas.ops.tpu.random.philox
    jax.experimental.pallas.ops.tpu.random.prng_utils
    jax.experimental.pallas.ops.tpu.random.threefry
    jax.experimental.pallas.ops.tpu.splash_attention
    jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel
    jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask
    jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask_info
    jax.experimental.roofline jax.experimental.source_mapper jax.experimental.sparse._base
    jax.experimental.sparse._lowerings jax.experimental.sparse.ad jax.experimental.sparse.api
    jax.experimental.sparse.bcoo jax.experimental.sparse.bcsr jax.experimental.sparse.coo
    jax.experimental.sparse.csr jax.experimental.sparse.linalg jax.experimental.sparse.random
    jax.experimental.sparse.test_util jax.experimental.sparse.transform
    jax.experimental.sparse.util jax.extend.mlir jax.extend.mlir.dialects jax.extend.mlir.ir
    jax.extend.mlir.passmanager
"""
"""Other public modules."""

PRIVATE = """
    abstract_arrays ad_checkpoint ad_util api api_util array basearray blocked_sampler
    buffer_callback cache_key callback checkify cloud_tpu_init clusters
    clusters.cloud_tpu_cluster clusters.cluster clusters.k8s_cluster clusters.mpi4py_cluster
    clusters.ompi_cluster clusters.slurm_cluster compilation_cache compilation_cache_interface
    compiler compute_on config core cudnn cudnn.fused_attention_stablehlo cudnn.fusion
    cudnn.scaled_matmul_stablehlo custom_api_util custom_batching custom_derivatives
    custom_partitioning custom_partitioning_sharding_rule debugger debugger.cli_debugger
    debugger.colab_debugger debugger.colab_lib debugger.core debugger.web_debugger debugging
    deprecations dispatch distributed dlpack dtypes earray effects environment_info error_check
    errors export export._export export.serialization export.serialization_generated
    export.shape_poly export.shape_poly_decision extend extend.random ffi flatten_util
    frozen_dict hardware_utils hashable_array hijax image image.scale indexing
    internal_test_util interpreters interpreters.ad interpreters.batching interpreters.mlir
    interpreters.partial_eval interpreters.pxla interpreters.remat jaxpr_util lax lax.ann
    lax.control_flow lax.control_flow.common lax.control_flow.conditionals
    lax.control_flow.loops lax.control_flow.solves lax.convolution lax.eval_jaxpr lax.fft
    lax.lax lax.linalg lax.other lax.parallel lax.scaled_dot lax.slicing lax.special lax.utils
    lax.windowed_reductions lax_reference layout lazy_loader lib lib.mlir lib.mlir.dialects
    lib.mosaic_gpu lib.triton linear_util literals logging_config lru_cache mesh mesh_utils
    monitoring named_sharding nn nn.functions nn.initializers numpy numpy.array_api_metadata
    numpy.array_constructors numpy.array_creation numpy.array_methods numpy.einsum numpy.error
    numpy.fft numpy.hijax numpy.index_tricks numpy.indexing numpy.lax_numpy numpy.linalg
    numpy.polynomial numpy.reductions numpy.scalar_types numpy.setops numpy.sorting
    numpy.tensor_contractions numpy.ufunc_api numpy.ufuncs numpy.util numpy.vectorize
    numpy.window_functions op_shardings ops ops.scatter ops.special pallas pallas.core
    pallas.cost_estimate pallas.einshape pallas.fuser pallas.fuser.block_spec
    pallas.fuser.custom_evaluate pallas.fuser.custom_fusion_lib pallas.fuser.fuser_utils
    pallas.fuser.fusible pallas.fuser.fusible_dtype pallas.fuser.fusion
    pallas.fuser.jaxpr_fusion pallas.helpers pallas.hlo_interpreter pallas.mosaic
    pallas.mosaic.core pallas.mosaic.error_handling pallas.mosaic.helpers
    pallas.mosaic.interpret pallas.mosaic.interpret.interpret_pallas_call
    pallas.mosaic.interpret.params pallas.mosaic.interpret.race_detection_state
    pallas.mosaic.interpret.shared_memory pallas.mosaic.interpret.thread_map
    pallas.mosaic.interpret.utils pallas.mosaic.interpret.vector_clock pallas.mosaic.lowering
    pallas.mosaic.pallas_call_registration pallas.mosaic.pipeline pallas.mosaic.primitives
    pallas.mosaic.random pallas.mosaic.sc_core pallas.mosaic.sc_lowering
    pallas.mosaic.sc_primitives pallas.mosaic.tpu_info pallas.mosaic_gpu pallas.mosaic_gpu.core
    pallas.mosaic_gpu.helpers pallas.mosaic_gpu.interpret
    pallas.mosaic_gpu.interpret.gpu_callbacks pallas.mosaic_gpu.interpret.interpret_pallas_call
    pallas.mosaic_gpu.interpret.jaxpr_interpret pallas.mosaic_gpu.interpret.params
    pallas.mosaic_gpu.interpret.shared_memory pallas.mosaic_gpu.lowering
    pallas.mosaic_gpu.pallas_call_registration pallas.mosaic_gpu.pipeline
    pallas.mosaic_gpu.primitives pallas.mosaic_gpu.torch pallas.mpmd pallas.pallas_call
    pallas.primitives pallas.triton pallas.triton.core pallas.triton.lowering
    pallas.triton.pallas_call_registration pallas.triton.primitives pallas.utils partition_spec
    path pickle_util pjit pmap pretty_printer profiler public_test_util random random.core
    random.philox2x32 random.philox4x32 random.prng random.rbg random.stateful_rng
    random.threefry2x32 random.threefry4x32 ref scipy scipy.cluster scipy.cluster.vq scipy.fft
    scipy.integrate scipy.linalg scipy.ndimage scipy.optimize scipy.optimize._lbfgs
    scipy.optimize.bfgs scipy.optimize.line_search scipy.optimize.minimize scipy.signal
    scipy.sparse scipy.sparse.linalg scipy.spatial scipy.spatial.transform scipy.special
    scipy.stats scipy.stats._core scipy.stats.bernoulli scipy.stats.beta scipy.stats.betabinom
    scipy.stats.binom scipy.stats.cauchy scipy.stats.chi2 scipy.stats.dirichlet
    scipy.stats.expon scipy.stats.gamma scipy.stats.gennorm scipy.stats.geom
    scipy.stats.gumbel_l scipy.stats.gumbel_r scipy.stats.kde scipy.stats.laplace
    scipy.stats.logistic scipy.stats.multinomial scipy.stats.multivariate_normal
    scipy.stats.nbinom scipy.stats.norm scipy.stats.pareto scipy.stats.poisson scipy.stats.t
    scipy.stats.truncnorm scipy.stats.uniform scipy.stats.vonmises scipy.stats.wrapcauchy
    shard_alike shard_map sharding sharding_impls source_info_util sourcemap stages state
    state.discharge state.indexing state.primitives state.types state.utils test_loader
    test_multiprocess test_util test_warning_util third_party third_party.scipy
    third_party.scipy.betaln third_party.scipy.interpolate third_party.scipy.linalg
    third_party.scipy.signal_helper third_party.scipy.special tpu tpu.linalg tpu.linalg.eigh
    tpu.linalg.qdwh tpu.linalg.stack tpu.linalg.svd tpu_custom_call traceback_util tree
    tree_util typing util xla_bridge xla_metadata xla_metadata_lib xla_transform
"""
"""Modules below ``jax._src``."""

JAXLIB = """
    _hlo _ifrt_proxy _jax _pathways _pretty_printer _profile_data _profiler _sdy_mpmd _xla
    cpu_feature_guard cpu_sparse gpu_common_utils gpu_linalg gpu_prng gpu_rnn gpu_solver
    gpu_sparse gpu_triton lapack libjax_common plugin_support triton triton._triton_enum_gen
    triton._triton_ops_gen triton.dialect utils version weakref_lru_cache xla_client
"""
"""Modules below ``jaxlib``."""
