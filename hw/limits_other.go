//go:build !linux

package hw

func lockedMemory() string { return "" }
