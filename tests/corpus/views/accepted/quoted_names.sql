SELECT `Id`, `id `, `größe`, `select`, x.`a.b` AS dotted, `tick``s` FROM crm.`Odd Names` AS x WHERE `größe` > 0 OR `a.b` = 1
