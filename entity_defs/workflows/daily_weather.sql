SELECT
  CAST(:nominal_time AS DATE)  AS day,
  origin,
  count(*)                     AS observations,
  round(avg(temp), 1)          AS temperature,
  round(sum(precip), 2)        AS precipitation,
  min(visib)                   AS visibility
FROM observations
GROUP BY origin
