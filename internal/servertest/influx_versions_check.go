//go:build check

package servertest

// InfluxVersions are the versions that tests run against, newest first.
var InfluxVersions = []string{Influx2, Influx1}
