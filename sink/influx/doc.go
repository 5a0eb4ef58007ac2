// Package influx stores points in InfluxDB: 2.x with token, organisation and bucket, and 1.8 by its compatibility API,
// where the bucket is "database/retention-policy" and the token, if any, "user:password".
//
// Requests go through the blocking write API of influxdb-client-go/v2. Its asynchronous API is not used: its Flush does
// not wait for retries, and a retry fires only when the next write comes. When to try again is the business of
// [sink.Queue]; this package says what a refusal means:
//
//   - *[sink.PermanentError]: the server read the points and refused some, in a document of its own (error.go has what
//     the servers send). Those of the batch that it accepts are stored all the same: a refused request is divided, by the
//     form of its points and then in halves, until the refused points stand alone.
//   - *[sink.RetryError]: anything else. Config is set for a wrong token, organisation or bucket, and for answers that no InfluxDB
//     gives; After for a server that named a time; Progress where Config.SplitRequests requests have been spent on a
//     division that the next try goes on with.
//
// Points are encoded by [AppendPoint]. Writing a point twice changes nothing (measurement, tags and time are its
// identity), so a request whose answer was lost is simply sent again.
package influx
