// Package policy says which ways flows may take, and whether one does: the path conformance of PINT (SIGCOMM 2020, section
// 3.2), for paths of whatever source. It is pure.
//
// A [Policy] is a list of rules. The first rule that a flow matches is the one that counts; a flow that none matches may go
// anywhere. A rule names nodes that a path has to pass in their order, nodes that it must not pass, and whole paths of which it
// has to be one. All that a rule names has to hold.
package policy
