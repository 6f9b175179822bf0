"""The figures that planning was tuned with, each with its meaning and its unit.

The activations' part of a budget is budget − resident: what is left for them once the variables,
the inputs and all else that the device holds before the step are paid for.
"""

from __future__ import annotations

from typing import NamedTuple

# Plans within a budget, in the order in which they are tried (`plan_search`).

FIRST_SHARE = 0.88
"""Share of the activations' part that the first plan may use, by the solver's memory model. The
rest is for what the allocator wastes, which is not known yet."""

PLAN_TIMES = (0.1, 0.25, 0.1, 0.1, 0.1, 0.1)
"""Shares of the time limit, one for each plan, at most. The first plan only shows what the
allocator wastes."""

ENOUGH_SECONDS, ENOUGH_PER_NODE = 1.5, 1e-3
"""Seconds for a plan, and more for each node of the graph, in which a search comes within half a
percent of a pass of what ten times as long would find; it begins where the plan before it ended."""

ENOUGH_SHARES = (0.3, 1.0, 0.6, 0.6, 0.6, 0.6)
"""Shares of those seconds, one for each plan: what the allocator wastes shows as well in a first
plan that is not the best one, and from the third one on little changes between two budgets."""

FORECAST_PLANS = 4
"""Plans that are made before the fastest of those that keep the budget is tried, where the layout
of the device's memory is known, so that forecasts hold. What the allocator wastes differs from plan
to plan by a tenth of the activations' part."""

FORECAST_SHARE = 0.35
"""Share of those seconds for each of them: several plans tell more than one that took longer."""

FORECAST_AIM = 0.985
"""Share of the activations' part that each of them is corrected to use."""

WORTH_A_TRIAL = 0.008
"""Share of a pass: if the memory that a tried plan leaves may save so much of a step, one more plan
is made and tried."""

FASTER_PLANS = 3
"""Plans that are made for it, at most. The first that is likely to keep the budget is tried."""

LONGER = 0.04
"""Share of the time limit that a plan may take in any case, so that a longer limit gives longer
searches."""


class Corrections(NamedTuple):
    """How a plan is judged, and the next one corrected, as shares of the activations' part.

    Attributes:
        near_enough: a first plan that uses so much needs no better one.
        most: a first plan that is expected to use more is not tried.
        aim: what each later plan is corrected to use.
        roomy: a plan that uses less gives time away, as one may that was corrected for an unlucky
            trial run. One more plan is tried, and the faster of both is taken.
    """

    near_enough: float
    most: float
    aim: float
    roomy: float


CORRECTIONS = Corrections(near_enough=0.97, most=1.0, aim=0.975, roomy=0.93)

LARGE_STEP = 10_000
"""Operations of a step that TensorFlow takes ten seconds and more to prepare, for every trial."""

LARGE_CORRECTIONS = Corrections(near_enough=0.9, most=0.97, aim=0.94, roomy=0.0)
"""Of such steps one plan that surely keeps the budget is worth more than a slightly faster one."""

AS_LEAN = 1.01
"""Times what the leanest plan needs: plans that need no more are as lean, the fastest is taken."""

EXHAUSTED, TOO_LARGE = 1.1, 1.05
"""Multiples of the activations' part: at least so much is said of a plan that ran out of memory,
and of one that is forecast to."""

LEANER_PLANS = 6
"""Plans that are tried if none of those fits. Of equally lean plans some fit the allocator better
than others, so that several are worth a try."""

LEANER_BY = 0.03
"""Share by which each of them is leaner than the one before it."""

LEANER_TIME = 0.05
"""Share of the time limit for each of them."""

# Plans of the least memory, and errors about budgets that are too small (`plan_search`).

LEANEST_TIMES = (1.0, 0.25, 0.25)
"""Shares of the time limit, one for each plan of the least memory. The next one is only tried if
the one before it ran out of memory."""

LEAST_TIME = 0.25
"""Share of the time limit for the least budget, which an error names."""

FOUND_AGAIN = 1.02
"""The least budget that an error names, as a multiple of what the leanest plan needs. Searches
differ, and a little more may be held by then."""

SCATTER = 0.04
"""Share of a step's activations: as much more may be held in training than in a trial run. In `fit`
the batches that are made meanwhile lie elsewhere (of 17 steps up to 3.5 % more); without a trial
run, or where copies of the variables could not lie where these do, the variables do."""

SCATTER_TYPICAL = 0.5
"""Share of what the steps of a trial run differed by which the typical one is below the highest."""

# Trial runs (`trial_run`).

TRIAL_STEPS = 8
"""Steps in a trial run. After a few steps the free pieces of memory lie in the disorder that then
stays."""

FIRST_TRIAL_STEPS = 4
"""Steps after which a trial run ends if the highest of them is no more than was forecast, or more
than the budget. One whose steps are equal ends before."""

EPOCH = 2
"""Steps of a trial run for which the input pipeline lasts. When another one begins, several batches
are made amid the activations of one step."""

EQUAL_STEPS = 3
"""Steps in a row that hold the same bytes: later ones would, too."""

TRIAL_SECONDS = 60.0
"""Seconds for each of them. A loop that waits for its inputs may wait for ever for made-up ones."""

COPIES_MATTER = 0.05
"""Share of what the device held when memory ran out. If the copies of the variables took less, the
plan itself was too large: steps differ from each other by more."""

UNCHANGED_STEPS = 8
"""Steps of the unchanged step that are measured, at most. On a CPU, where threads change the order
of its operations, the highest counts for a share; on a GPU the lowest, after the first one."""

ROOM_FOR_UNCHANGED = 2.0
"""Multiple of what the unchanged step is expected to add to what is held: it runs only where so
much memory is left, for it may need more than is expected of it."""

HOPELESS = 1.5
"""Multiple of what the device can hold: an unchanged step that is expected to need more does not
run, for it can only exhaust the memory, after minutes of preparation if it is large."""

# Plain steps and others, timed in turn (`step_times`, `trial.in_turn`).

COMPARED_SHARE = 0.3
"""Share of the time of planning so far that the comparison may be expected to take, with twice the
preparation of the plan's own step for that of the plain one."""

COMPARED_LEAST = 1.0
"""Seconds that it may be expected to take in any case."""

TURN_SECONDS = 2.0
"""Seconds for all turns, once both steps are prepared; there is one turn at least."""

MOST_TURNS = 7
"""Turns at most."""

# The first steps of training (`monitor`).

MONITORED_STEPS = 10
"""Steps in a row that have to stay within the budget."""

LEANER_ATTEMPTS = 2
"""Plans that are made anew. If a step then still takes more, the plan is not the reason."""

# Steps that may exhaust the device's memory (`risk`).

STEPS_AT_RISK = 32
"""The first steps by a plan are saved, so many of them unless they fit by far: meanwhile what is
free comes to lie in other pieces. Of two runs of ResNet50 one failed in its first step, and one
after the eighth. All of them together take the time of a few steps."""

A_LITTLE_MORE = 0.01
"""Share of what the device can hold: as much as that, small buffers that come and go make a
difference. Larger ones can leave free memory in pieces, so that a step fails that fits by far."""

LESS_AFTER_EXHAUSTION = 0.1
"""Share of the budget by which a plan is leaner, at least, that takes over where a step has
exhausted the device's memory: what was free lay in pieces, and a try that fails takes ten seconds.
"""

LESS_OF_COMPILED = 0.1
"""Share of what a compiled step adds by which it is leaner then, at least: most of that is one
block, which has to find a free piece as large."""

# What is reserved before planning (`preparation`).

KERNEL_ROOM = 64 << 20
"""Bytes for what a kernel needs while it runs: Eigen's convolutions fill the CPU's last cache."""

# Plans that are kept (`kept_plans`).

MORE_ROOM = 0.02
"""Share of the activations' part: with so much more memory than a kept plan was made for, a faster
one is looked for."""

OTHER_COSTS = 0.02
"""Share of a pass: if a kept plan's overhead differs by so much from what it was by the costs then,
another one may be better."""

# Several workers (`replicas`).

PATIENCE = 60.0
"""Multiple of the time limit: as long a worker waits for the first one's plan, while it lives."""

# Plans that XLA compiles (`compiled.search`).

COMPILED_WASTE = 1.25
"""Multiple of the bytes that XLA takes for each live byte of the unchanged step: so much it takes
for those of a plan (of ResNet50, EfficientNetB0, DenseNet121 and Xception 1.17 to 1.4)."""

COMPILED_LEAST_RATIO = 0.6
"""Bytes for each live byte of the unchanged step: less tells nothing about a plan, which computes
again what XLA has put into the loops that read it."""

RECOMPUTED_LEAST_RATIO = 0.85
"""The same where XLA itself computes again what is over the device's memory: two GPTs took 0.55 and
0.62 bytes for each live byte so, and 0.84 and 0.82 without it."""

COMPILED_AIMS = (0.98, 0.96, 0.94, 0.92)
"""Shares of the activations' part that the next plan is corrected to use, one for each plan that
is compiled. Where none of them keeps the budget, the leanest is compiled; where the last one is the
first that does, one more between it and those that don't."""

COMPILED_ENOUGH = 3
"""So many plans are compiled where one before the last keeps the budget. On a GPU XLA itself
computes again what is over the device's memory, so that bytes hardly change just below that: of a
GPT (25×512, 8 GiB) it took 5,526, 5,114, 5,138, 5,105 and 4,389 MiB for 6,050, 5,300, 5,000, 4,775
and 3,957 live; 4,948 were allowed. A third plan didn't keep it, the leanest took 18 % more time."""

COMPILED_TIMES = (0.25, 0.15, 0.15, 0.15)
"""Shares of the time limit, one for each of those plans."""

COMPILED_LEAST_SAVED = 0.4
"""Bytes that XLA is taken to save for each live byte less, at least; and the share of a plan's live
bytes that the next plan has at least."""

COMPILED_MORE = (1.0, 1.05, 1.1, 1.2)
"""Multiples of the live bytes that are asked for, until the schedule is another one."""

COMPILED_NEAR_ENOUGH = 0.96
"""Share of the budget: a plan that keeps it and uses so much needs no better."""

WORTH_A_COMPILATION = 0.02
"""Share of a pass: nor does a plan that keeps it and takes no more extra time. A better one might
save a part of that, and takes a quarter of a minute to compile."""
