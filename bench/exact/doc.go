// Package exact holds the plans of every family against a general solver. Its tests state the problem of a family as a
// mixed integer programme, straight from the instance and in other terms than the planner thinks in, have HiGHS solve it,
// and compare: what is left out, the objective, and every bound and claim of optimality. `make python` installs HiGHS.
//
// Of query mixes, packets until an answer are given here, and not modelled; the frequencies can be held. What becomes of
// those that cannot is held against exact arithmetic beside the planner, as are shares beyond the worst query's.
package exact
