// Package loop runs a controller of probes (planner/control). It passes time, suspects and answers to the controller.
// It carries out the actions at agents over gRPC, at switches, and in a journal.
//
// # Parts
//
//	Loop      the controller, its mailbox and the journal; one goroutine, or the calls of Step of a test on virtual time
//	Server    agents that follow over gRPC with mutual TLS
//	Rounds    which rounds of probes got lost, from what agents count; pure, fed by surveys of Server or Emulated
//	Emulated  agents of package emu in the same process
//	Installers  switches, each with a goroutine of its own, over P4Runtime or as files
//	Probing   turns plans of the controller into plans of agents
//	Journal   lines of JSON, synced before their actions are carried out
//	Admin     what an operator asks and says, over HTTP on loopback or a socket of the file system
//
// # Order
//
// Events wait in the mailbox. Each round passes all of them to the controller, in the order of arrival. Then it writes
// and syncs the records of the journal once, and hands over the actions. An action whose record could not be written is
// not handed over. The sides carry actions out beside the loop and post the outcomes.
package loop
