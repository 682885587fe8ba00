-- Inputs are views named like the process's inputs. :nominal_time and every property are bound parameters.
SELECT
  :nominal_time                                       AS hour,
  f.origin,
  f.carrier,
  count(*)                                            AS flights,
  count(f.dep_delay)                                  AS departed,
  count_if(f.dep_delay > CAST(:threshold AS DOUBLE))  AS delayed,
  round(sum(f.dep_delay), 1)                          AS delay_minutes,
  max(w.visib)                                        AS visibility,
  max(w.wind_speed)                                   AS wind_speed
FROM flights f
LEFT JOIN weather w ON w.origin = f.origin
GROUP BY f.origin, f.carrier
