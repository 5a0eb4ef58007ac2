// Package access decides what a client of the page may do ([Gate]), keeps the tokens and sessions by which it is known, and
// records what it changes.
//
// # Order
//
// A request is known by the first of these that it has: a bearer token, the user header of a trusted proxy, the cookie of a session.
// A login by OpenID Connect begins a session, as one by the form does. A wrong bearer token is refused, whatever else the request has. Where no login is configured, every request has the open role.
//
// # Files
//
// The directory of [Config] holds tokens.json and changes.jsonl, each written so that a killed process or a full disk leaves what was
// confirmed before. A lock keeps it to one process. Tokens are stored as SHA-256 of their secret: 256 random bits need no slow hash.
// Without the directory there are no tokens by role, and nothing can be changed.
//
// Sessions are in memory alone: a restart ends them. A file of them would be as secret as a password, and would save one login.
//
// A change is recorded and synced before it is made. One that cannot be recorded is not made; one that fails gets a second record
// with the reason.
package access
