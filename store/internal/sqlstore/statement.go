package sqlstore

import (
	"context"
	"database/sql"
)

// A statement is one SQL text. Each stands in texts and nowhere else.
type statement int

const (
	savepoint statement = iota
	rollbackTo
	release

	headForUpdate
	setHead
	tenantHead
	setTenantHead
	addLeaf
	leafHash
	head
	leaves
	leavesOfTenant
	seqBefore

	host
	setHost
	policy
	setPolicy
	policyInForce

	setTenant
	tenantAt
	tenantsBehind

	addKey
	newestKey
	keyByID
	keyOfTenant
	keysOfTenant
	setKey
	useKey

	skillsKept
	grantsKept
	bytesKept
	contentKept

	claimAt
	setClaim
	dropClaim
	forgetClaims
	largeAnswers
	sweepClaims
	leftClaims
	nextBeginner

	addGrant
	newestGrant
	grantByID
	grantsOfTenant
	revokeGrant

	addVersion
	newestVersion
	newestVersionFile
	versionsOfSkill
	skillsOfTenant

	names
	addContent
	addBlob
	addFile
	declaration
	files
	entries
	file

	addCall
	call
	calls
	callsOfSkill
	addDaily
	daily

	tenantBehind
	grantsFrom
	versionsFrom
	keysFrom
	callsFrom
	contentsFrom

	removeCall
	setCall
	namings
	eraseContent
	removeFiles
	removeBlob

	statements // their number
)

const grantColumns = `tenant, id, skill, script, all_scripts, pin, reason, source, granted_by, granted, expires, revoked, revoked_by, min_tier, sum`

const keyColumns = `id, tenant, rest, used`

const versionColumns = `tenant, id, skill, digest, stored, source, reason, imported_by, imported, deleted, sum`

var texts = [statements]string{
	savepoint:  `SAVEPOINT change`,
	rollbackTo: `ROLLBACK TO SAVEPOINT change`,
	release:    `RELEASE SAVEPOINT change`,

	headForUpdate: `SELECT size, edge FROM log_head WHERE one = 1`, // and the dialect's lock
	setHead:       `UPDATE log_head SET size = $1, edge = $2 WHERE one = 1`,
	tenantHead:    `SELECT seq, hash FROM tenant_head WHERE tenant = $1`,
	setTenantHead: `INSERT INTO tenant_head (tenant, seq, hash) VALUES ($1, $2, $3)
		ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`,
	addLeaf:        `INSERT INTO leaf (idx, tenant, seq, hash, bytes) VALUES ($1, $2, $3, $4, $5)`,
	leafHash:       `SELECT hash FROM leaf WHERE idx = $1`,
	head:           `SELECT size, edge FROM log_head WHERE one = 1`,
	leaves:         `SELECT idx, tenant, seq, hash, bytes FROM leaf WHERE idx >= $1 ORDER BY idx LIMIT $2`,
	leavesOfTenant: `SELECT idx, tenant, seq, hash, bytes FROM leaf WHERE tenant = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
	seqBefore:      `SELECT COALESCE(MAX(seq), 0) FROM leaf WHERE tenant = $1 AND idx < $2`,

	// A row is there exactly when it was set, with a revision of at least 1. The
	// condition makes the change and the comparison with what the caller saw one.
	host: `SELECT revision, setting FROM host_setting WHERE one = 1`,
	setHost: `INSERT INTO host_setting (one, revision, setting) SELECT 1, CAST($1 AS BIGINT) + 1, $2
			WHERE CAST($1 AS BIGINT) = COALESCE((SELECT revision FROM host_setting WHERE one = 1), 0)
		ON CONFLICT (one) DO UPDATE SET revision = excluded.revision, setting = excluded.setting`,
	policy: `SELECT revision, setting FROM policy WHERE tenant = $1`,
	setPolicy: `INSERT INTO policy (tenant, revision, setting) SELECT $1, CAST($2 AS BIGINT) + 1, $3
			WHERE CAST($2 AS BIGINT) = COALESCE((SELECT revision FROM policy WHERE tenant = $1), 0)
		ON CONFLICT (tenant) DO UPDATE SET revision = excluded.revision, setting = excluded.setting`,

	policyInForce: `SELECT p.revision, p.setting, t.revision, t.setting FROM (SELECT 1 AS n) AS one
		LEFT JOIN policy AS p ON p.tenant = $1 LEFT JOIN tenant_setting AS t ON t.tenant = $1`,

	tenantAt:      `SELECT revision, setting FROM tenant_setting WHERE tenant = $1`,
	tenantsBehind: `SELECT tenant, revision, setting FROM tenant_setting WHERE tenant > $1 ORDER BY tenant LIMIT $2`,
	setTenant: `INSERT INTO tenant_setting (tenant, revision, setting) SELECT $1, CAST($2 AS BIGINT) + 1, $3
			WHERE CAST($2 AS BIGINT) = COALESCE((SELECT revision FROM tenant_setting WHERE tenant = $1), 0)
		ON CONFLICT (tenant) DO UPDATE SET revision = excluded.revision, setting = excluded.setting`,

	addKey:      `INSERT INTO api_key (id, tenant, rest) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING`,
	newestKey:   `SELECT ` + keyColumns + ` FROM api_key WHERE tenant = $1 ORDER BY n DESC LIMIT 1`,
	keyByID:     `SELECT ` + keyColumns + ` FROM api_key WHERE id = $1`,
	keyOfTenant: `SELECT ` + keyColumns + ` FROM api_key WHERE tenant = $1 AND id = $2`,
	keysOfTenant: `SELECT ` + keyColumns + ` FROM api_key WHERE tenant = $1
			AND n < COALESCE((SELECT n FROM api_key WHERE tenant = $1 AND id = $2), 9223372036854775807)
		ORDER BY n DESC LIMIT $3`,
	setKey:   `UPDATE api_key SET rest = $3 WHERE tenant = $1 AND id = $2`,
	useKey:   `UPDATE api_key SET used = $2 WHERE id = $1 AND (used IS NULL OR used <= $3)`,
	keysFrom: `SELECT n, ` + keyColumns + ` FROM api_key WHERE tenant = $1 AND n > $2 ORDER BY n LIMIT $3`,

	// None of these joins a table with itself: an engine that knows nothing of the rows yet
	// compares each with each then, which took 600 ms for 1,000 skills.
	skillsKept: `SELECT COUNT(*) FROM (SELECT 1 FROM skill_version WHERE tenant = $1
		GROUP BY skill HAVING MAX(n) = MAX(CASE WHEN deleted = 0 THEN n END)) AS one`,
	grantsKept: `SELECT COUNT(*) FROM (SELECT 1 FROM grants WHERE tenant = $1
		GROUP BY skill, script HAVING MAX(n) = MAX(CASE WHEN revoked IS NULL THEN n END)) AS one`,
	bytesKept: `SELECT CAST(COALESCE((SELECT SUM(size) FROM content_file WHERE content IN (SELECT digest FROM skill_version WHERE tenant = $1)), 0)
		+ COALESCE((SELECT SUM(size) FROM content_file WHERE content IN (SELECT pin FROM grants WHERE tenant = $1)
			AND content NOT IN (SELECT digest FROM skill_version WHERE tenant = $1 AND digest IS NOT NULL)), 0) AS BIGINT)`,
	contentKept: `SELECT COUNT(*) FROM content WHERE digest = $1 AND erased IS NULL`,

	claimAt: `SELECT body, run, begun, done, large, answer, instance, sum FROM idempotency_key WHERE tenant = $1 AND key = $2`,
	setClaim: `INSERT INTO idempotency_key (tenant, key, body, run, begun, done, large, answer, instance, sum) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (tenant, key) DO UPDATE SET body = excluded.body, run = excluded.run, begun = excluded.begun, done = excluded.done,
			large = excluded.large, answer = excluded.answer, instance = excluded.instance, sum = excluded.sum`,
	dropClaim:    `DELETE FROM idempotency_key WHERE tenant = $1 AND key = $2`,
	forgetClaims: `DELETE FROM idempotency_key WHERE tenant = $1`,
	largeAnswers: `SELECT COUNT(*) FROM (SELECT 1 FROM idempotency_key WHERE tenant = $1 AND large = 1 LIMIT $2) AS one`,
	sweepClaims: `DELETE FROM idempotency_key WHERE (tenant, key) IN
		(SELECT tenant, key FROM idempotency_key WHERE begun < $1 ORDER BY begun LIMIT $2)`,
	leftClaims:   `SELECT tenant, key, run, begun FROM idempotency_key WHERE done = 0 AND instance = $1 ORDER BY tenant, key LIMIT $2`,
	nextBeginner: `SELECT MIN(instance) FROM idempotency_key WHERE done = 0 AND instance > $1`,

	addGrant: `INSERT INTO grants (` + grantColumns + `)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT (tenant, id) DO NOTHING`,
	newestGrant: `SELECT ` + grantColumns + ` FROM grants WHERE tenant = $1 AND skill = $2 AND script = $3 ORDER BY n DESC LIMIT 1`,
	grantByID:   `SELECT ` + grantColumns + ` FROM grants WHERE tenant = $1 AND id = $2`,
	grantsOfTenant: `SELECT ` + grantColumns + ` FROM grants WHERE tenant = $1 AND ($2 = '' OR skill = $2)
		AND ($4 = '' OR n < COALESCE((SELECT b.n FROM grants b WHERE b.tenant = $1 AND b.id = $4), 9223372036854775807))
		ORDER BY n DESC LIMIT $3`,
	revokeGrant: `UPDATE grants SET revoked = $3, revoked_by = $4, sum = $5 WHERE tenant = $1 AND id = $2 AND revoked IS NULL`,

	addVersion: `INSERT INTO skill_version (` + versionColumns + `)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (tenant, id) DO NOTHING`,
	newestVersion: `SELECT ` + versionColumns + ` FROM skill_version WHERE tenant = $1 AND skill = $2 ORDER BY n DESC LIMIT 1`,
	newestVersionFile: `SELECT ` + versionColumns + `, EXISTS (SELECT 1 FROM content_file WHERE content = digest AND path = $3)
		FROM skill_version WHERE tenant = $1 AND skill = $2 ORDER BY n DESC LIMIT 1`,
	versionsOfSkill: `SELECT ` + versionColumns + ` FROM skill_version WHERE tenant = $1 AND skill = $2 ORDER BY n DESC LIMIT $3`,
	skillsOfTenant: `SELECT ` + versionColumns + ` FROM skill_version AS v WHERE tenant = $1 AND deleted = 0
			AND NOT EXISTS (SELECT 1 FROM skill_version AS later WHERE later.tenant = v.tenant AND later.skill = v.skill AND later.n > v.n)
		ORDER BY skill`,

	names: `SELECT COUNT(*) FROM (SELECT 1 FROM grants WHERE tenant = $1 AND pin = $2
		UNION ALL SELECT 1 FROM skill_version WHERE tenant = $1 AND digest = $2 LIMIT 1) AS one`,
	// A content that was erased is kept anew.
	addContent: `INSERT INTO content (digest, declaration) VALUES ($1, $2)
		ON CONFLICT (digest) DO UPDATE SET erased = NULL, declaration = excluded.declaration WHERE content.erased IS NOT NULL`,
	addBlob:     `INSERT INTO blob (digest, data) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING`,
	addFile:     `INSERT INTO content_file (content, path, blob, size) VALUES ($1, $2, $3, $4)`,
	declaration: `SELECT declaration, erased FROM content WHERE digest = $1`,
	files: `SELECT f.path, b.data FROM content_file AS f JOIN blob AS b ON b.digest = f.blob
		WHERE f.content = $1 ORDER BY f.path`,
	entries: `SELECT path, blob, size FROM content_file WHERE content = $1 ORDER BY path`,
	file:    `SELECT data FROM blob WHERE digest = $1`,

	addCall: `INSERT INTO call_record (tenant, id, skill, digest, rest) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant, id) DO NOTHING`,
	call:  `SELECT id, skill, digest, rest FROM call_record WHERE tenant = $1 AND id = $2`,
	calls: `SELECT id, skill, digest, rest FROM call_record WHERE tenant = $1 AND id < $2 ORDER BY id DESC LIMIT $3`,
	callsOfSkill: `SELECT id, skill, digest, rest FROM call_record WHERE tenant = $1 AND skill = $2 AND id < $3
		ORDER BY id DESC LIMIT $4`,

	addDaily: `INSERT INTO usage_sum (tenant, day, skill, calls, succeeded, duration, waited, output) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (tenant, day, skill) DO UPDATE SET calls = usage_sum.calls + excluded.calls, succeeded = usage_sum.succeeded + excluded.succeeded,
			duration = usage_sum.duration + excluded.duration, waited = usage_sum.waited + excluded.waited, output = usage_sum.output + excluded.output`,
	daily: `SELECT day, skill, calls, succeeded, duration, waited, output FROM usage_sum WHERE tenant = $1 AND ($2 = '' OR skill = $2)
			AND day >= $3 AND day <= $4 AND (day < $5 OR day = $5 AND skill > $6)
		ORDER BY day DESC, skill LIMIT $7`,

	tenantBehind: `SELECT MIN(tenant) FROM (SELECT MIN(tenant) AS tenant FROM tenant_head WHERE tenant > $1
		UNION ALL SELECT MIN(tenant) FROM policy WHERE tenant > $1 UNION ALL SELECT MIN(tenant) FROM grants WHERE tenant > $1
		UNION ALL SELECT MIN(tenant) FROM skill_version WHERE tenant > $1
		UNION ALL SELECT MIN(tenant) FROM tenant_setting WHERE tenant > $1 UNION ALL SELECT MIN(tenant) FROM api_key WHERE tenant > $1
		UNION ALL SELECT MIN(tenant) FROM call_record WHERE tenant > $1) AS one`,
	grantsFrom:   `SELECT n, ` + grantColumns + ` FROM grants WHERE tenant = $1 AND n > $2 ORDER BY n LIMIT $3`,
	versionsFrom: `SELECT n, ` + versionColumns + ` FROM skill_version WHERE tenant = $1 AND n > $2 ORDER BY n LIMIT $3`,
	callsFrom:    `SELECT id, skill, digest, rest FROM call_record WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3`,
	removeCall:   `DELETE FROM call_record WHERE tenant = $1 AND id = $2`,
	setCall:      `UPDATE call_record SET rest = $3 WHERE tenant = $1 AND id = $2`,
	namings:      `SELECT (SELECT COUNT(*) FROM grants WHERE pin = $1) + (SELECT COUNT(*) FROM skill_version WHERE digest = $1)`,
	eraseContent: `UPDATE content SET erased = $2, declaration = $3 WHERE digest = $1 AND erased IS NULL`,
	removeFiles:  `DELETE FROM content_file WHERE content = $1`,
	removeBlob:   `DELETE FROM blob WHERE digest = $1 AND NOT EXISTS (SELECT 1 FROM content_file WHERE blob = $1)`,

	contentsFrom: `SELECT digest FROM content WHERE digest > $1 AND erased IS NULL ORDER BY digest LIMIT $2`,
}

// Which side needs a statement: what is prepared there is also checked there
// against the tables that the database has.
var (
	writing = []statement{
		savepoint, rollbackTo, release, headForUpdate, setHead, tenantHead, setTenantHead, addLeaf, leafHash, setHost, setPolicy,
		addGrant, newestGrant, grantByID, revokeGrant, addVersion, newestVersion, addContent, addBlob, addFile, addCall, addDaily,
		call, entries, removeCall, setCall, namings, eraseContent, removeFiles, removeBlob,
		setTenant, addKey, newestKey, keyOfTenant, setKey, useKey, skillsKept, grantsKept, bytesKept, contentKept, names,
		tenantAt, claimAt, setClaim, dropClaim, forgetClaims, largeAnswers, sweepClaims,
	}
	reading = []statement{
		head, leaves, leavesOfTenant, seqBefore, host, policy, newestGrant, grantByID, grantsOfTenant, newestVersionFile,
		versionsOfSkill, skillsOfTenant, names, declaration, files, entries, file, call, calls, callsOfSkill, daily,
		tenantHead, tenantBehind, grantsFrom, versionsFrom, callsFrom, contentsFrom,
		policyInForce, tenantAt, tenantsBehind, keyByID, keyOfTenant, keysOfTenant, keysFrom, skillsKept, grantsKept, bytesKept,
		leftClaims, nextBeginner,
	}
)

// prepared holds the statements of one side; nil for those of the other.
type prepared [statements]*sql.Stmt

type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

func prepare(ctx context.Context, on preparer, d Dialect, which []statement) (p prepared, err error) {
	for _, s := range which {
		text := texts[s]
		if other, ok := arrayTexts[s]; ok && d.Arrays {
			text = other
		}
		if s == headForUpdate {
			text += d.LockHead
		}
		if p[s], err = on.PrepareContext(ctx, text); err != nil {
			p.close()
			return prepared{}, err
		}
	}
	return p, nil
}

func (p prepared) close() {
	for _, s := range p {
		if s != nil {
			_ = s.Close()
		}
	}
}
