package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gdisim/result"
)

// writer writes a result in one format.
type writer func(w io.Writer, r *result.Result, v view) error

func writers() map[string]writer {
	return map[string]writer{"text": writeText, "csv": writeCSV, "json": writeJSON, "md": writeMarkdown}
}

func writeJSON(w io.Writer, r *result.Result, _ view) error { return result.Encode(w, r) }

// choose returns formats[name]; the error lists what there is.
func choose[T any](formats map[string]T, name string) (T, error) {
	f, ok := formats[name]
	if !ok {
		known := slices.Sorted(maps.Keys(formats))
		return f, fmt.Errorf("unknown --format %q (want %s)%s", name, strings.Join(known, ", "), didYouMean(name, known))
	}
	return f, nil
}

// sameFile reports whether two names are one existing file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// samePlace reports whether two names, of files that need not exist, are one.
func samePlace(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	x, err := filepath.Abs(a)
	if err != nil {
		return false
	}
	y, err := filepath.Abs(b)
	return err == nil && x == y || sameFile(a, b)
}

// output is where data goes: standard output, or a file that appears under its
// name only when it is complete.
type output struct {
	w      io.Writer
	file   *os.File // temporary, or the device itself
	rename string   // final name; "" for a device
}

// openOutput opens -o before a run, so that a name that cannot be written costs
// no run. "" and "-" are stdout.
func openOutput(stdout io.Writer, name string) (*output, error) {
	if name == "" || name == "-" {
		return &output{w: stdout}, nil
	}
	// A link's target is replaced, not the link.
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	mode := fs.FileMode(0o644)
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("-o %s: is a directory", name)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return nil, fmt.Errorf("-o %w", fileError(err))
		}
		return &output{w: f, file: f}, nil
	case err == nil:
		mode = info.Mode().Perm()
		if mode&0o200 == 0 {
			return nil, fmt.Errorf("-o %s: is write-protected", name)
		}
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".tmp*")
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, fmt.Errorf("-o %s: %w", name, err)
	}
	o := &output{w: f, file: f, rename: name}
	if err := f.Chmod(mode); err != nil {
		o.discard()
		return nil, fmt.Errorf("-o %w", fileError(err))
	}
	return o, nil
}

// commit makes the file appear.
func (o *output) commit() error {
	if o.file == nil {
		return nil
	}
	f := o.file
	o.file = nil
	err := f.Close()
	if err == nil && o.rename != "" {
		err = os.Rename(f.Name(), o.rename)
	}
	if err != nil && o.rename != "" {
		_ = os.Remove(f.Name())
	}
	return err
}

// discard removes what was not committed; after commit it does nothing.
func (o *output) discard() {
	if o.file == nil {
		return
	}
	_ = o.file.Close()
	if o.rename != "" {
		_ = os.Remove(o.file.Name())
	}
	o.file = nil
}
