"""Makes the sentences of all reports (terminal, HTML, JUnit, JSON, lessons) from the facts of a verdict."""
