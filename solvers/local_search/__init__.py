"""Search among schedules in any order: a graph and a budget in, ever cheaper schedules out."""
