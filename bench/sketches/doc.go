// Package sketches measures our quantile sketch against the libraries that people use, in one run and with the same
// values:
//
//	go test -run xx -bench . -count 6 ./bench/sketches
//
// Values are 16-bit log codes of latencies around 10 µs. "hot" updates one sketch that is never emptied; "hot/first=10000"
// starts again after 10 000 values; "many=100000" updates 100 000 sketches in random order, each of which already holds
// some 2 000 values. The libraries have the accuracy that they come with, which is better than that of 120
// bytes.
package sketches
