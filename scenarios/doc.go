// Package scenarios reads what a user writes: scenario files, hardware
// profiles and stacks, all YAML, all strict. Everything that a scenario can set
// is a row of one field table (Fields), from which come the loader's checks, the
// defaults, the JSON schema (Schema) and the reference page (Reference). A
// loaded Scenario has points (the combinations of its sweep) and paths; each
// pair resolves to a flat Config, which remembers what was read from it, so that
// a result can name every parameter that made it. The package knows no model.
package scenarios
