// Package udp receives datagrams. Every worker has one SO_REUSEPORT socket for each listen address, which it reads in
// batches.
//
// # How it reads
//
// Receiving costs more than all later stages, and waking up for every datagram costs more than receiving. A process
// that wakes up for each one collapses under load: the kernel spends the CPU on filling a buffer that the process
// never empties. That is receive livelock (Mogul and Ramakrishnan, TOCS 1997). So a worker takes what is there with
// recvmmsg, up to BatchSize datagrams a call. When a call did not fill its batch, the worker naps for [Config].Nap
// instead of waiting for the next datagram. The faster datagrams come, the more each wake-up finds. When a call finds
// nothing, the worker blocks in ppoll until something arrives: an idle source costs no CPU.
//
// A nap lasts a millisecond. With naps of 100 µs (nanosleep, timerfd), a worker that received 20 000 datagrams a
// second used 13 µs of CPU for each. Nearly all of that was for waking up. With 1 ms it is 3 µs, and at 100 000 a
// second 1.8 instead of 3.4 µs. A nap costs buffer space: a worker does not nap when a nap would fill more than a
// quarter of it.
//
// # What is lost, and how it is known
//
// The receive buffer is set with SO_RCVBUFFORCE if the process has CAP_NET_ADMIN, else with SO_RCVBUF, and read back.
// [Source.Notices] reports a grant below the request. The kernel counts the datagrams that it drops because the buffer
// of a socket is full. The count is read from SO_RXQ_OVFL messages beside the data and with SO_MEMINFO, so that drops
// without a later datagram are seen, too. The number of arrivals is exactly handed over + KernelDropped + Refused, all
// in [Source.Stats].
//
// The kernel charges a datagram of up to about 300 bytes with 768 bytes against twice the configured size. A buffer of
// 16 MiB therefore holds 43 000 of them, 87 ms of a flood at 500 000 a second. A larger buffer survives longer pauses;
// it does not help a collector that is too slow on average.
//
// When the context ends, a socket filter rejects further datagrams, which the kernel counts as dropped. The datagrams
// in the buffers are handed over, and then the sockets are closed. A datagram that reached the socket is thus either
// handed over or counted.
//
// # Time of receipt
//
// A frame has the time at which the kernel received it. A caller asks with [Source.Prompt] whether all frames before a
// time were handed over. Every worker, also one that naps or waits, answers when each of its sockets was empty or gave
// a later datagram. Between its time stamp and the socket's queue a datagram passes the network stack. A caller should
// therefore ask a little later than the time in question.
//
// # Steering
//
// The kernel picks the socket by a hash of addresses and ports, so all datagrams of one exporter reach the same
// worker, in order. A single loud exporter can then overrun one worker while the others sleep. Steering "spread"
// attaches a classic BPF program to the group that picks a socket at random for every datagram. That balances any
// load, at the price of order. Reports of one exporter pass through several workers and arrive slightly reordered.
//
// # CPUs
//
// [Config].CPUs binds workers to CPUs, in turns. The kernel fills the pages of a worker's batch for the first time when that
// worker reads, and so takes them from the memory of its CPU's node.
//
// # Sharing the port
//
// SO_REUSEPORT lets a second process of the same user bind the same port, and silently take half of the traffic. The
// first socket of an address is therefore bound without the option, which fails when another process has the port. The
// option is set afterwards, and the other workers' sockets join.
//
// # Admitting sources
//
// [Config].AllowSources is checked here and not by a socket filter. The kernel counts rejections by a filter in the
// same counter as datagrams that did not fit the buffer. Loss and refusal could then not be distinguished.
//
// On systems other than Linux one socket an address is read through package net, a datagram a call. Such a system does
// not report its drops, and Notices says so.
package udp
