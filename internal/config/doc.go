// Package config reads what an installation is told: one YAML file, environment
// variables TRACON_…, and flags, each overriding the one before. Every value
// knows where it came from, and `tracon config print` shows it.
//
// [Settings] is the one table: key, meaning, default and how its text is read.
package config
