// Package cli is the command line of gdisim: one file and one test per
// subcommand, and the writers of a result as text, CSV, JSON and Markdown. It
// decides nothing about models; data goes to standard output, all else to
// standard error.
package cli
