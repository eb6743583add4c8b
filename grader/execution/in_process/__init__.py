"""A kernel file as an object of this process, whose launchers take torch tensors: ``load_kernel``."""
