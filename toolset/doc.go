// Package toolset is the four tools that give a model a tenant's skills: list_skills,
// load_skill, read_skill_resource and run_skill_script. They are plain Go: a name, a
// description, a JSON Schema and a call, for whoever holds a loop of its own; the MCP
// endpoint is made of them too.
//
// Start with [New]; [Toolset.For] gives one tenant's tools to one actor, and
// [Session.Tools] what a model may be shown now. Nothing that a model sends is trusted,
// and of what scripts and skills say nothing can pass for a word of ours.
package toolset
