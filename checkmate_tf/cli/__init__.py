"""The command line: one command a file, each with its arguments and its exit status."""
