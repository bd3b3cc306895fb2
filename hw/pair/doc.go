// Package pair joins the two processes of a measurement over TCP: frames of JSON
// with a bound on their length, a deadline on every one, and a handshake that
// proves a shared token on both sides before anything else is believed, then
// holds versions and the scenario's digest against each other. It carries no
// measured traffic.
//
// The token is proven, never sent; what follows is not encrypted.
package pair
