// Package pintplan makes the execution plans that planners write ready for switches and decoders: planner and decode know
// nothing of each other, and emulator, collector and tables of P4 programs are to follow the same plan.
package pintplan
