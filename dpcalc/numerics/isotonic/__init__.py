"""The optimal shift allocation, the cheapest way to spend a carried flow, by isotonic regression. Costs round up.

Given inflows s_t >= 0, weights v_t >= 0 and carry factors c_t >= 0 (t = 1..T) and a start z_0 >= 0, choose
a_t >= 0 with

    z_t = c_t z_{t-1} + s_t - a_t >= 0   for every t,      z_T = 0,

minimising sum a_t^2 / v_t (0/0 = 0, positive/0 = inf). Source: "optimal shift allocation: lower convex hull
of (V_t, S_t)". With P_t = prod_{k>t} c_k the problem reads: minimise sum b_t^2 / w_t, b_t = P_t a_t, w_t =
P_t^2 v_t, with prefix sums of b below those of P_t s_t and equal at T. The answer is the greatest convex
minorant of the points (V_t, S_t) of prefix sums of (P_t^2 v_t, P_t s_t): it splits the steps into *blocks* of
constant slope and costs sum S_B^2 / V_B, where for a block, measured at its own end,

    S = sum_t s_t prod_{t<k<=end} c_k,   V = sum_t v_t prod_{t<k<=end} c_k^2,   Q = prod_{k in block} c_k,

and two neighbours A (left), N (right) join to (Q_N S_A + S_N, Q_N^2 V_A + V_N, Q_A Q_N). No product over the
whole range is ever formed. Blocks are pooled from right to left: the stack after step t is the optimum of the
suffix t..T, and a restart in mid-run is one more, weightless, block at its left.

Why the returned cost is never below the optimum
------------------------------------------------
u = 2^-53. The pass over the steps only *chooses* the boundaries; the cost is then recomputed from the data.

1. The choice. Rounding can make the pass keep two blocks apart that should be pooled. This is harmless: each
   block spends its own inflow, which is feasible. It can also pool too much, which relaxes z_t >= 0; the error
   is of second order:
   a) Every decision is exact for slightly different data. When A joins N, the roundings of S_A Q_N + S_N
      multiply all s of A, or all s of A and N, by a common factor, which alters no earlier decision inside A
      or inside N; so do those of V; those of Q_A Q_N go into the first carry factor of A, which no decision
      inside the new block uses; and those of the comparison S_A V_N >= Q_N S_N V_A go into all s of A, undone
      by a factor on all of A and N. A step lives through at most T joins, each adding at most 12 u to its s
      and 6 u to its v (shares of the carry factors included). For these data each block has prefix slopes >=
      its slope >= suffix slopes, exactly.
   b) Sums of non-negative terms inherit relative errors, so for the true data the prefix slopes of a block of
      slope m are >= m (1 - h) and its suffix slopes are <= m (1 + h), h = 40 T u (2 * (12 + 6) < 40).
   c) The hull of the points inside the block starts at its smallest prefix slope and ends at its largest
      suffix slope. Its pieces j, all in m (1 +- h), cost sum V_j m_j^2 = S_B^2/V_B + sum V_j (m_j - m)^2 <=
      (S_B^2/V_B)(1 + h^2). Hull pieces are feasible, so: optimum <= (sum_B S_B^2/V_B)(1 + h^2).
2. The sum. S_B and V_B come from a balanced tree of joins. Q is carried in two doubles (8 u^2 per join, below
   u in all for T < 2^49), so each level costs a term of S at most 3 u (Q to one double, product, sum) and a
   term of V 5 u. A cost is then off by (2 * 3 + 5) u per level, plus 3 u for S^2/V and u for the correctly
   rounded sum over blocks.

Hence cost = sum * (1 + slack), slack = (11 levels + 8) u + (40 T u)^2, rounded up; the margins left in 40 and
8 cover the terms of higher order and the rounding of the inflation itself. By the same second-order argument,
pooling too little costs no more than h^2 either.

Exponents. In the tree every number is a mantissa with its own integer exponent. The pass uses plain doubles if
the ranges of the data prove that nothing over- or underflows. Only Q may become too small; it is kept above a
floor at which its products stay below 2^-64 of what they are added to (one more rounding in (a)). Otherwise the
same code runs on `WideFloat` numbers.
"""

from dpcalc.numerics.isotonic.allocation import Allocation, allocate, cost_of, remaining, spend

__all__ = ["Allocation", "allocate", "cost_of", "remaining", "spend"]
