"""Load a kernel file into this Python process with ``load_kernel``, and call its launchers with torch tensors."""
