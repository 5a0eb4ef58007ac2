// Package influx stores points in InfluxDB. Version 2.x is used with token, organisation and bucket. Version 1.8 is
// used by its compatibility API, with the bucket "database/retention-policy" and the token, if any, "user:password".
//
// Requests go through the blocking write API of influxdb-client-go/v2. Its asynchronous API is not used: its Flush
// does not wait for retries, and a retry fires only when the next write comes. When to try again is decided by
// [sink.Queue]. This package classifies refusals:
//
//   - *[sink.PermanentError]: the server read the points and refused some, in a document of its own (see error.go). The
//     accepted points of the batch are stored. To that end a refused request is divided, by the form of its points and
//     then in halves, until the refused points stand alone.
//   - *[sink.RetryError]: any other failure. Config is set for a wrong token, organisation or bucket, and for answers
//     that no InfluxDB gives. After is set if the server named a time. Progress is set when a division has used
//     Config.SplitRequests requests; the next try continues it.
//
// Points are encoded by [AppendPoint]. Measurement, tags and time are the identity of a point, so a second write changes
// nothing. A request whose answer was lost is therefore sent again.
package influx
