CREATE TABLE work (id int PRIMARY KEY, value int);
INSERT INTO work VALUES (1, 1), (2, 2);
CREATE FUNCTION outer_wait(depth int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF depth = 0 THEN
    PERFORM pg_sleep(600);
    RETURN 0;
  END IF;
  RETURN (SELECT outer_wait(depth - 1));
END $$;
