package cause

// leak is the probability that a place shows a sign without any of the causes.
const leak = .001

// Faults are the kinds of causes.
var Faults = []Fault{}
