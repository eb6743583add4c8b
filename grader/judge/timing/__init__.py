"""Time on a GPU: ``grader bench``, the clock of the stage *fast*, and the floor that no kernel can be below."""
