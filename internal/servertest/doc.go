// Package servertest starts real servers for tests, on loopback, each a process with a folder of its own that ends with
// the test.
//
// # Kafka
//
// A [Broker] is Apache Kafka in one process that is broker and controller (KRaft). .ci/kafka.sh fetches it into
// .cache/kafka. A test that does not harm its broker takes the one that all tests of its package share:
//
//	func TestMain(m *testing.M) { servertest.Main(m) }
//
//	func TestIt(t *testing.T) {
//		b := servertest.SharedBroker(t)
//		b.CreateTopic(b.Prefix+"windows", 16)
//	}
//
// # InfluxDB
//
// An [Influx] is InfluxDB 1.8.10, which is built within a minute. The build tag check adds 2.7.12 with token and
// organisation, whose Flux parser takes Rust and ten minutes. .ci/influxdb.sh builds them into .cache/influxdb.
//
// # Parquet
//
// [ReadParquet] reads what a file holds, to be compared with what a store holds.
package servertest
