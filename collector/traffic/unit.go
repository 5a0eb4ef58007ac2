package traffic

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"time"
)

// The work of a unit: what a report costs any collector at least, by plain calls.
const (
	unitBytes   = 200      // of the datagram
	unitPlaces  = 16       // places of a table that are read and written
	unitTable   = 64 << 20 // bytes of the table, more than caches hold
	unitsRound  = 256      // units between two looks at the clock
	leastRounds = 8
)

// Unit measures the unit of processor time, for the given time at least. A unit is one datagram of 200 bytes that a
// plain loop sends to itself over loopback and reads, of which it hashes all bytes and counts in 16 random places of 64
// MiB. Processor times of a collector are stated in units: machines differ by a factor of ten, also from one minute to
// the next, and the unit differs with them. The result is the median of many rounds.
func Unit(least time.Duration) (time.Duration, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, fmt.Errorf("traffic: unit of processor time: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(least + time.Minute)); err != nil {
		return 0, fmt.Errorf("traffic: unit of processor time: %w", err)
	}
	to := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	table := make([]uint32, unitTable/4)
	for i := range table {
		table[i] = uint32(i) // the system allocates it now, and not in the loop
	}
	var (
		out, in [unitBytes]byte
		rounds  []time.Duration
		random  uint64
	)
	for start := time.Now(); time.Since(start) < least || len(rounds) < leastRounds; {
		before, began := CPUTime(), time.Now()
		for range unitsRound {
			random += golden
			binary.LittleEndian.PutUint64(out[:], mix(random))
			if _, err := conn.WriteToUDPAddrPort(out[:], to); err != nil {
				return 0, fmt.Errorf("traffic: unit of processor time: %w", err)
			}
			n, _, err := conn.ReadFromUDPAddrPort(in[:])
			if err != nil {
				return 0, fmt.Errorf("traffic: unit of processor time: %w", err)
			}
			h := random
			for i := 0; i+8 <= n; i += 8 {
				h = mix(h ^ binary.LittleEndian.Uint64(in[i:]))
			}
			for range unitPlaces {
				h = mix(h + golden)
				table[h%(unitTable/4)]++
			}
		}
		spent := CPUTime() - before
		if spent <= 0 { // a system without processor times
			spent = time.Since(began)
		}
		rounds = append(rounds, spent/unitsRound)
	}
	slices.Sort(rounds)
	return rounds[len(rounds)/2], nil
}
