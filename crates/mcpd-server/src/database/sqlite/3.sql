-- The first line of a script is kept in place of that there is one, for its interpreter may be gone at the next start.
-- Those that are there are asked once more.
DELETE FROM definitions;
ALTER TABLE definitions DROP COLUMN has_shebang;
-- NULL if there is none.
ALTER TABLE definitions ADD COLUMN shebang TEXT;
