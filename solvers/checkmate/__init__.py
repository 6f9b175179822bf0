"""The paper's methods: a graph and a budget in, a schedule or a bound by equation (9) out."""
