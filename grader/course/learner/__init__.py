"""The grader's data about one learner: the progress, and the original skeletons."""
