package main

// target is a package with the functions that are mutated and the tests that are run against each mutant.
type target struct {
	pkg   string // pattern of the go command
	funcs string // regular expression over the names of functions, and Type.method of methods
	run   string // regular expression of -test.run
}

// targets are the functions on which everything else rests: checks of plans, sequence numbers, sketches, causes, spool, the closing of
// a fleet's windows, the ledger, the control of probes.
var targets = []target{
	{"./planner/cover", `Check.*|check.*|checker\..*`, `.`},
	{"./inference/cause", `Grouper\..*|both|tidy|best`, `.`},
	{"./collector/ledger", `.*`, `.`},
	{"./inference/sequence", `.*`, `.`},
	{"./sketches/logcode", `.*`, `.`},
}
