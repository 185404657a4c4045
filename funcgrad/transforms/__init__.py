"""The interpreters: jvp, linearize and transpose, batch, stage. None names a primitive."""
