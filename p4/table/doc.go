// Package table is the state that a control plane keeps in a switch, as a P4Runtime server has it: entries of tables with a key,
// an action and its parameters, and a size that a table does not grow beyond. Writers to switches, the emulated switches and the
// programs themselves share it.
//
// It is about the entries alone. What an entry does is the program's; how it comes to the switch is the control plane's.
//
// A [Store] is not safe for concurrent use. Finding an entry in a table of exact fields takes one look-up in a map; in
// any other table it takes a walk along its entries, which are few.
package table
