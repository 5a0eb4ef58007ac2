package rate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// socketCounters adds up the sockets of a UDP port.
type socketCounters struct {
	sockets int
	queued  uint64 // bytes of memory that wait
	drops   uint64
}

// readSockets reads the UDP sockets of the network namespace of this thread. The file /proc/net is that of the first
// thread of the process, which measurements with namespaces of their own may have moved to another one.
func readSockets(port uint16) (socketCounters, error) {
	var t socketCounters
	for _, name := range []string{"/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"} {
		b, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return t, err
		}
		c, err := parseSockets(b, port)
		if err != nil {
			return t, fmt.Errorf("%s: %w", name, err)
		}
		t.sockets += c.sockets
		t.queued += c.queued
		t.drops += c.drops
	}
	return t, nil
}

// parseSockets reads lines of: sl local_address rem_address st tx_queue:rx_queue tr:when retrnsmt uid timeout inode ref
// pointer drops.
func parseSockets(b []byte, port uint16) (c socketCounters, err error) {
	suffix := fmt.Sprintf(":%04X", port)
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) < 13 || !strings.HasSuffix(f[1], suffix) {
			continue
		}
		_, rx, _ := strings.Cut(f[4], ":")
		queued, err := strconv.ParseUint(rx, 16, 64)
		if err != nil {
			return c, err
		}
		drops, err := strconv.ParseUint(f[12], 10, 64)
		if err != nil {
			return c, err
		}
		c.sockets++
		c.queued += queued
		c.drops += drops
	}
	return c, nil
}

// readDelivered returns the datagrams that programs of the network namespace of this thread received over IPv4.
func readDelivered() (uint64, error) {
	const name = "/proc/thread-self/net/snmp"
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	n, err := parseDelivered(b)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// parseDelivered reads the second line of two that begin with "Udp:", whose first number is InDatagrams.
func parseDelivered(b []byte) (uint64, error) {
	for line := range bytes.Lines(b) {
		if f := strings.Fields(string(line)); len(f) > 1 && f[0] == "Udp:" && f[1] != "InDatagrams" {
			return strconv.ParseUint(f[1], 10, 64)
		}
	}
	return 0, errors.New("no datagrams of UDP are counted")
}

// readBacklogDrops returns the datagrams that a CPU's backlog queue had no room for, of all network namespaces.
func readBacklogDrops(cpu int) (uint64, error) {
	b, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		return 0, err
	}
	return parseBacklogDrops(b, cpu)
}

// parseBacklogDrops reads a line of hexadecimal words for every CPU that is online; the second word is the drops, the
// thirteenth the CPU's number.
func parseBacklogDrops(b []byte, cpu int) (uint64, error) {
	n := 0
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) < 2 {
			continue
		}
		number := n
		if len(f) >= 13 {
			v, err := strconv.ParseUint(f[12], 16, 32)
			if err != nil {
				return 0, fmt.Errorf("softnet_stat: %w", err)
			}
			number = int(v)
		}
		if number == cpu {
			return strconv.ParseUint(f[1], 16, 64)
		}
		n++
	}
	return 0, fmt.Errorf("softnet_stat: no CPU %d", cpu)
}

// processTime returns the CPU time that a process used.
func processTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseProcessTime(b)
}

// parseProcessTime reads fields 14 and 15 of /proc/PID/stat, in ticks of 10 ms. The second field, the name, can
// hold anything, and ends with the last parenthesis.
func parseProcessTime(b []byte) (time.Duration, error) {
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 13 {
		return 0, fmt.Errorf("process status has %d fields", len(f))
	}
	user, err := strconv.ParseUint(f[11], 10, 63)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseUint(f[12], 10, 63)
	if err != nil {
		return 0, err
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}
