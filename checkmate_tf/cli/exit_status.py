"""The exit statuses of `checkmate-tf`, which scripts rely on."""

SOLVED = 0
BAD_INPUT = 2
INFEASIBLE = 3
NO_ANSWER = 4
