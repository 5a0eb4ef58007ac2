// Package silent finds links, ends of ways and flows whose packets vanish without a report.
package silent
