"""What the grader keeps about one learner: the progress so far, and the skeletons as the course gave them."""
