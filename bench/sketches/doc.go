// Package sketches measures our sketches against the libraries that people use, in one run and with the same values:
//
//	go test -run xx -bench . -count 6 ./bench/sketches
//
// Values are 16-bit log codes of latencies around 10 µs. "hot" updates one sketch that never ends; "hot/first=10000"
// starts again after 10 000 values; "many=100000" updates one of 100 000 sketches in random order, after 2 000 values
// each.
package sketches
