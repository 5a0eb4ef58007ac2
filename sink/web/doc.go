// Package web serves the page that shows the network, and the API behind it.
//
// It is a sink: every window that goes to the stores also comes here. The last windows are kept in memory that the
// configuration bounds. Nothing is read back from a store, so the page works without one. Questions with a range of
// time are answered out of the history on disk, by [ask.Past]. The page is one HTML file with one script, one style
// sheet and one font, all in the binary. It requests nothing from other hosts.
//
// # What is kept
//
// Rows are kept as they come: hops, flows and exporters by their keys, values as numbers. Texts are made on request
// only, by the functions that write and read them everywhere else. The kept rows share no memory with the window that
// they came in.
//
// A window is identified by its end. The newest window or a later one is always taken, and a part of a window that is
// still kept is added to it. A window older than the oldest kept one is counted as late and left out. When a table of
// hops, flows or exporters is full, the longest silent entries are evicted. When all entries are in the newest window,
// the new one is refused and counted. Values are kept as 32-bit floats: their 24 bits are more than the sketches
// promise.
//
// A fleet has the same page. Its windows are always whole, and replace the kept window with the same end
// ([Server.ReplaceWindow]). Each comes with the list of the collectors that are missing in it.
//
// # The API
//
// [endpoints] lists the API. docs/api.md and openapi.json, at /docs/api and /api/openapi.json, are written from the list
// and from the types of the answers. Beside it are /metrics, /healthz and /readyz, which the collector mounts.
//
// The parameter q= keeps the rows that have each of its words in their names, numbers and addresses. A word may be a
// prefix, such as 10.1.0.0/16, which holds the addresses of a row. The search ranks what is the text before what begins
// with it.
//
// The parameters node= and key= take every text of a hop or a flow that hopscope prints. Findings have the same
// identifiers as in stores and logs. Metrics are named like the fields of the stored series "hop". Times are
// milliseconds since 1970, latencies nanoseconds, queues bytes, utilisation a ratio; a value that was not reported is
// null. Nodes are numbers; a client that shows names requests those separately. Only the sentences of findings contain
// names.
//
// # Access
//
// On a loopback address every client that reaches the port has access. The Host header must be an IP address,
// localhost, or a name from the configuration. This refuses a page of another site that points its own name at
// 127.0.0.1 (DNS rebinding). On any other address a login is required. Package access knows clients and their roles, and
// [endpoints] states the role of each. Only /healthz, /readyz, the form and the documentation need none. What changes
// something is a POST, which the gate records before it is made.
package web
