"""Times on a GPU: ``grader bench``, the clock of the stage *fast*, and the physical lower bound."""
