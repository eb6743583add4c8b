"""An output beside its reference: whether it is right, and what a wrong one looks like."""
