"""What this machine builds with: its compilers, how they are run, the cache of what they made, limits of each GPU.

Nothing here knows what is built.
"""
