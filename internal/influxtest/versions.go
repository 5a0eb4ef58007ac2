//go:build !check

package influxtest

// Versions are the versions that tests run against, newest first.
var Versions = []string{V1}
