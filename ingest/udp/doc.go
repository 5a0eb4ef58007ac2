// Package udp receives datagrams: one SO_REUSEPORT socket for every worker and listen address, read in batches.
//
// # How it reads
//
// Receiving costs more than everything that follows it, and waking up for every datagram costs more than receiving: a process
// that wakes up for each one collapses under load exactly when it matters, because the kernel spends the CPU on filling a buffer
// that the process never gets to empty (receive livelock; Mogul and Ramakrishnan, TOCS 1997). So a worker takes what is there
// with recvmmsg, up to BatchSize datagrams a call. When a call did not fill its batch it naps for [Config].Nap instead of
// waiting for the next datagram. The faster they come, the more each wake-up finds. When a call finds nothing, the worker blocks
// in ppoll until something arrives: an idle source costs no CPU.
//
// A nap is of a millisecond. With naps of 100 µs (nanosleep, timerfd) a worker that receives 20 000 datagrams a second used
// 13 µs of CPU for each of them, nearly all for waking up; with 1 ms it is 3 µs, and at 100 000 a second 1.8 instead
// of 3.4 µs. What a nap costs is buffer space: a worker does not nap while a nap would fill more than a quarter of it.
//
// # What is lost, and how it is known
//
// The receive buffer is set with SO_RCVBUFFORCE where the process has CAP_NET_ADMIN, else with SO_RCVBUF, and read
// back; [Source.Notices] says what was granted when it is less than was asked. What the kernel drops because the
// buffer is full is counted by it for every socket. It is read both from SO_RXQ_OVFL messages beside the data and
// with SO_MEMINFO, so that drops which no later datagram reported are seen too. [Source.Stats] adds them up exactly:
// handed over + KernelDropped + Refused is what arrived.
//
// The kernel charges a datagram of up to about 300 bytes with 768 bytes against twice the configured size. A buffer of
// 16 MiB therefore holds 43 000 of them, 87 ms of a flood at 500 000 a second. A larger buffer survives longer pauses;
// it does not help a collector that is too slow on average.
//
// When the context ends, a socket filter turns away what still arrives (counted by the kernel as dropped), what is in
// the buffers is handed over, and then the sockets are closed: a datagram that reached the socket is either handed
// over or counted.
//
// # Time of receipt
//
// A frame has the time at which the kernel received it. A caller asks with [Source.Prompt] whether all of a time was handed
// over: every worker, also one that naps or waits, then answers when each of its sockets was empty or gave a later datagram.
// Between its time and the socket's queue a datagram passes the network stack, so a question is best asked a little later than
// the time that it is about.
//
// # Steering
//
// The kernel picks the socket by a hash of addresses and ports, so all datagrams of one exporter reach the same worker,
// in order; a single loud exporter can then overrun one worker while the others sleep. Steering "spread" attaches
// a classic BPF program to the group that picks a socket at random for every datagram. That balances any load, at the
// price of order: reports of one exporter pass through several workers and arrive slightly reordered.
//
// # Sharing the port
//
// SO_REUSEPORT lets a second process of the same user bind the same port, and silently take half of the traffic. The first
// socket of an address is therefore bound without the option, which fails when another process is there; the option is set
// afterwards, and the other workers' sockets join.
//
// # Admitting sources
//
// [Config].AllowSources is checked here and not by a socket filter, because the kernel counts what a filter turns away in the
// same counter as what did not fit the buffer: loss and refusal could not be distinguished.
//
// On other systems than Linux one socket an address is read through package net, a datagram a call; such a system does not
// report what it dropped, and Notices says so.
package udp
