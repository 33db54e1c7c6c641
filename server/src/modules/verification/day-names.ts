/** The names of days and months in the languages that tasks are most often written in. */
export const WEEKDAY_NAMES: readonly string[] =
  'monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves viernes sábado domingo lunedì martedì mercoledì giovedì venerdì sabato domenica maandag dinsdag woensdag donderdag vrijdag zaterdag zondag måndag tisdag onsdag torsdag fredag lördag söndag mandag tirsdag lørdag poniedziałek wtorek środa czwartek piątek pondělí úterý středa čtvrtek pátek'.split(
    ' ',
  )
export const MONTH_NAMES: readonly string[] =
  'january february march april june july august september october november december januar februar märz juni juli oktober dezember janvier février avril juin juillet août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre'.split(
    ' ',
  )
