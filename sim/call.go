package sim

// Sink learns that work it asked another component for has ended. arg is the
// number that the asker gave, c the cause with the spans of that work.
type Sink interface {
	Done(arg uint32, c Cause)
}
