// Package planner holds what every plan is made of, and the checks that validate a plan independently of who made it.
//
// Algorithms live below it, a package a family: cover (INT-path, INT-Probe), orchestrate (INTO), attention (FANT) and
// delivery (RFT). They are pure functions: topology or instance, options and seed in; plan and statistics out. Each
// family's instance and plan types, its JSON and its Check are one file here, so that a checker never sees the code of
// the algorithm that it checks.
package planner
